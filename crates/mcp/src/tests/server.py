"""An MCP server over standard input and output whose faults its arguments choose."""

import json
import os
import subprocess
import sys
import time

FAULTS = set(sys.argv[1:])
LOG = os.environ.get("SERVER_LOG")


def note(text):
    if LOG:
        with open(LOG, "a", encoding="utf-8") as log:
            log.write(text + "\n")


def send(message):
    if "nulls" in FAULTS and "result" in message:
        message = {**message, "error": None}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(content):
    return {"content": [{"type": "text", "text": content}]}


def receive():
    line = sys.stdin.readline()
    if not line:
        note("end of input")
        if "stays" in FAULTS:
            time.sleep(600)
        sys.exit(0)
    return json.loads(line)


def tools():
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    names = ["echo", "fail", "wait", "die", "ask", "progress", "pid", "huge"]
    listed = [{"name": name, "description": f"Does {name}.", "inputSchema": schema} for name in names]
    if "many" in FAULTS:
        listed = [{"name": f"tool_{number}", "inputSchema": schema} for number in range(5000)]
    if "schemas" in FAULTS:
        outside = {"$ref": "https://schemas.invalid/a.json"}
        round_ = {"$ref": "#/$defs/node"}
        node = {"type": "object", "properties": {"next": round_}}
        listed = [
            {"name": "outside", "inputSchema": {"type": "object", "properties": {"a": outside}}},
            {"name": "round", "inputSchema": {"type": "object", "properties": {"a": round_}, "$defs": {"node": node}}},
            {"name": "wrong", "inputSchema": {"type": "object", "properties": {"a": {"type": 7}}}},
            {"name": "none", "inputSchema": {}},
        ]
    if "malformed" in FAULTS:
        listed = [listed[0], {"name": "bad", "inputSchema": "text"}]
    if "changed" in FAULTS:
        listed = listed[:1]
    return listed


def page(cursor):
    start = int(cursor or 0)
    listed, size = tools(), 700 if "many" in FAULTS else 50
    result = {"tools": listed[start : start + size]}
    if "newest" in FAULTS:
        result["resultType"] = "complete"
    if start + size < len(listed) or "endless" in FAULTS:
        result["nextCursor"] = str(min(start + size, len(listed)))
    return result


def call(number, name, arguments, meta):
    if name == "echo":
        send({"id": number, "result": text(arguments.get("text", ""))})
    elif name == "fail":
        send({"id": number, "result": {**text("no such city"), "isError": True}})
    elif name == "wait":
        note("waiting")
    elif name == "die":
        sys.stderr.write("fatal: out of luck\n")
        sys.stderr.flush()
        os._exit(3)
    elif name == "pid":
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        send({"id": number, "result": text(f"{os.getpid()} {child.pid}")})
    elif name == "progress":
        token = meta.get("progressToken")
        for step in range(4):
            time.sleep(float(arguments.get("text") or 0))
            params = {"progressToken": token, "progress": step + 1, "total": 4, "message": f"step {step + 1}"}
            send({"method": "notifications/progress", "params": params})
        send({"id": number, "result": text("done")})
    elif name == "ask":
        params = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
        send({"id": "question", "method": "elicitation/create", "params": params})
        answer = receive()
        send({"id": number, "result": text(json.dumps(answer.get("result")))})
    elif name == "huge":
        sys.stdout.write('{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % number)
        for _ in range(1024):
            sys.stdout.write("x" * (1 << 20))
        sys.stdout.write('"}]}}\n')
        sys.stdout.flush()
        note("sent all of it")


def offer(method, params):
    """Returns the result of a request for resources and prompts; None for others."""
    uri, name = params.get("uri"), params.get("name")
    if method == "resources/list":
        listed = [{"uri": "memo:///a", "name": "a", "mimeType": "text/plain", "size": 5, "description": "First.\nMemo."}]
        if "malformed" in FAULTS:
            return {"resources": [{"uri": "memo:///bad", "name": 7}, *listed]}
        more = [{"uri": f"memo:///{number}", "name": f"n{number}"} for number in range(300)]
        return {"resources": more} if params.get("cursor") else {"resources": listed, "nextCursor": "more"}
    if method == "resources/templates/list" and "templates" in FAULTS:
        malformed = [{"name": "bad"}] if "malformed" in FAULTS else []
        return {"resourceTemplates": [*malformed, {"uriTemplate": "memo:///{name}", "name": "memos"}]}
    if method == "resources/read" and uri == "memo:///a":
        return {"contents": [{"uri": uri, "text": "hello"}]}
    if method == "resources/read" and uri == "memo:///png":
        return {"contents": [{"uri": uri, "mimeType": "image/png", "blob": "iVBORw0KGgpyZXN0"}]}
    if method == "resources/read" and uri == "memo:///bin":
        return {"contents": [{"uri": uri, "text": "x" * 300000}, {"uri": uri, "mimeType": "a/b", "blob": "AAAA"}]}
    if method == "prompts/list":
        arguments = [{"name": "file", "description": "Path.", "required": True}, {"name": "tone"}]
        if "malformed" in FAULTS:
            return {"prompts": [{"name": "bad", "arguments": "file"}, {"name": "review", "arguments": arguments}]}
        return {"prompts": [{"name": "review", "description": "Reviews.", "arguments": arguments}, {"name": "re view"}]}
    if method == "prompts/get" and name == "review":
        asked = f"Review {params['arguments']['file']}."
        image = {"type": "image", "data": "iVBORw0KGgpyZXN0", "mimeType": "image/png"}
        return {"messages": [
            {"role": "user", "content": {"type": "text", "text": asked}},
            {"role": "user", "content": image},
            {"role": "assistant", "content": {"type": "text", "text": "Gladly."}},
        ]}
    return None


def capabilities():
    offered = {"tools": {"listChanged": True}}
    if "offers" in FAULTS:
        offered |= {"resources": {}, "prompts": {"listChanged": True}}
    return offered


def discover(number):
    send({"id": number, "result": {
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities(),
        "ttlMs": 0, "cacheScope": "private",
    }})


def change(kind, subscription):
    """Reports that a list has changed."""
    params = {"_meta": {"io.modelcontextprotocol/subscriptionId": subscription}} if subscription is not None else {}
    send({"method": f"notifications/{kind}/list_changed", "params": params})


def main():
    subscription = None
    note(f"started {os.getpid()}")
    if "rubbish" in FAULTS:
        print("Welcome to the server!\n{not json}\n[]\n\"text\"", flush=True)
    if "exits" in FAULTS:
        sys.stderr.write("error: no configuration\n")
        sys.exit(2)
    while True:
        message = receive()
        method, number = message.get("method"), message.get("id")
        note(str(method))
        if method == "server/discover" and "strict" in FAULTS:
            sys.exit(1)
        elif "silent" in FAULTS:
            continue
        elif method == "server/discover" and "newest" in FAULTS:
            discover(number)
        elif method == "subscriptions/listen" and "newest" in FAULTS:
            subscription = number
            params = {
                "_meta": {"io.modelcontextprotocol/subscriptionId": number},
                "notifications": message["params"]["notifications"],
            }
            send({"method": "notifications/subscriptions/acknowledged", "params": params})
        elif "offers" in FAULTS and offer(method, message.get("params") or {}):
            send({"id": number, "result": offer(method, message.get("params") or {})})
        elif method == "initialize":
            version = "2025-06-18" if "older" in FAULTS else message["params"]["protocolVersion"]
            result = {
                "protocolVersion": version,
                "capabilities": capabilities(),
                "serverInfo": {"name": "scripted", "version": "1"},
            }
            send({"id": number, "result": result})
        elif method == "tools/list":
            send({"id": number, "result": page((message.get("params") or {}).get("cursor"))})
        elif method == "tools/call":
            params = message["params"]
            call(number, params["name"], params.get("arguments") or {}, params.get("_meta") or {})
            if "changes" in FAULTS:
                FAULTS.add("changed")
                change("tools", subscription)
                if "offers" in FAULTS:
                    change("prompts", subscription)
        elif number is not None:
            send({"id": number, "error": {"code": -32601, "message": f"unknown method {method}"}})


main()
