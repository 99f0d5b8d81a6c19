"""An MCP server that needs a token, and the authorization servers that issue it, each at an origin of its own.

Faults are chosen by the arguments. The first line of output has the origins; requests to /control change the state.
"""

import base64
import hashlib
import json
import secrets
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

FAULTS = set(sys.argv[1:])
LOG = []
CLIENTS, CODES, TOKENS, REFRESH = {}, {}, {}, {}
STATE = {"issuer": None}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body=None, **headers):
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if body is not None:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def take(self):
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        if url.path != "/control":
            LOG.append({
                "origin": self.server.origin, "method": self.command, "path": url.path, "body": body,
                "authorization": self.headers.get("Authorization"),
            })
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        return url.path, query, body


class Resource(Handler):
    """The MCP server."""

    def do_GET(self):
        path, query, _ = self.take()
        if path == "/control":
            return self.control(query)
        if path == "/.well-known/oauth-protected-resource/mcp" and "open" not in FAULTS:
            return self.reply(200, {
                "resource": self.server.origin + "/mcp", "authorization_servers": [STATE["issuer"]],
                "scopes_supported": ["read", "write"],
            })
        self.reply(404 if path != "/mcp" else 405)

    def control(self, query):
        if "expire" in query:
            TOKENS.clear()
        if "revoke" in query:
            REFRESH.clear()
        if "move" in query:
            STATE["issuer"] = other.origin
        self.reply(200, LOG)

    def do_POST(self):
        path, _, body = self.take()
        if "moves-forever" in FAULTS:
            return self.reply(307, Location=path + "/")
        if path == "/mcp":
            for status in (302, 307, 308):
                if f"moves-{status}" in FAULTS:
                    return self.reply(status, Location="/mcp/")
            if "moves-away" in FAULTS:
                return self.reply(307, Location=other.origin + "/stolen")
        if path not in ("/mcp", "/mcp/"):
            return self.reply(404)
        if "open" in FAULTS:
            return self.answer(json.loads(body), ["read"])
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        metadata = self.server.origin + "/.well-known/oauth-protected-resource/mcp"
        if token not in TOKENS:
            refusal = f'Bearer resource_metadata="{metadata}", scope="read"'
            return self.reply(401, WWW_Authenticate=refusal)
        if "redirects" in FAULTS:
            return self.reply(307, Location=other.origin + "/stolen")
        message = json.loads(body)
        wants_more = (message.get("params") or {}).get("name") == "write" and "write" not in TOKENS[token]
        if wants_more:
            refusal = f'Bearer error="insufficient_scope", scope="write", resource_metadata="{metadata}"'
            return self.reply(403, WWW_Authenticate=refusal)
        self.answer(message, TOKENS[token])

    def do_DELETE(self):
        self.take()
        self.reply(405)

    def respond(self, message, status=200):
        message = {"jsonrpc": "2.0", **message}
        if "nulls" in FAULTS:
            message = {"result": None, "error": None, **message}
        if "events" not in FAULTS:
            return self.reply(status, message)
        data = f"event: message\ndata: {json.dumps(message)}\n\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def answer(self, message, scopes):
        number, method = message.get("id"), message.get("method")
        if number is None:
            return self.reply(202)
        if method == "initialize":
            result = {
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "guarded", "version": "1"},
            }
        elif method == "tools/list":
            result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("read", "write")]}
        elif method == "tools/call" and "fails" in FAULTS:
            status = 500 if "status-500" in FAULTS else 400 if "status-400" in FAULTS else 200
            return self.respond({"id": number, "error": {"code": -32602, "message": "no such file"}}, status)
        elif method == "tools/call" and "large" in FAULTS:
            result = {"content": [{"type": "text", "text": "x" * (65 << 20)}]}
        elif method == "tools/call":
            result = {"content": [{"type": "text", "text": " ".join(scopes)}]}
        else:
            return self.respond({"id": number, "error": {"code": -32601, "message": "unknown method"}})
        self.respond({"id": number, "result": result})


class Issuer(Handler):
    """An authorization server."""

    def do_GET(self):
        path, query, _ = self.take()
        origin = self.server.origin
        if path == "/.well-known/oauth-authorization-server":
            metadata = {
                "issuer": origin, "authorization_endpoint": origin + "/authorize", "token_endpoint": origin + "/token",
                "registration_endpoint": origin + "/register", "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"], "authorization_response_iss_parameter_supported": True,
            }
            if "closed" in FAULTS:
                del metadata["registration_endpoint"]
            return self.reply(200, metadata)
        if path != "/authorize":
            return self.reply(404)
        known = CLIENTS.get(query.get("client_id")) or {}
        if query["redirect_uri"] not in known.get("redirect_uris", []) or query["response_type"] != "code":
            return self.reply(400, {"error": "invalid_request"})
        if query["code_challenge_method"] != "S256" or query["resource"] != resource.origin + "/mcp":
            return self.reply(400, {"error": "invalid_target"})
        answer = {"state": query["state"], "iss": origin}
        if "denies" in FAULTS:
            answer |= {"error": "access_denied", "error_description": "Not today."}
        else:
            code = secrets.token_urlsafe()
            CODES[code] = query
            answer["code"] = code
        if "wrong-state" in FAULTS:
            answer["state"] = "wrong"
        if "wrong-issuer" in FAULTS:
            answer["iss"] = "https://issuer.invalid"
        self.reply(302, Location=query["redirect_uri"] + "?" + urlencode(answer))

    def do_POST(self):
        path, _, body = self.take()
        if path == "/register":
            client = json.loads(body) | {"client_id": secrets.token_urlsafe()}
            if "secret" in FAULTS:
                client |= {"client_secret": "cl1ent-s3cret", "token_endpoint_auth_method": "client_secret_basic"}
            CLIENTS[client["client_id"]] = client
            return self.reply(201, client)
        if path != "/token":
            return self.reply(404)
        if "token-redirects" in FAULTS:
            return self.reply(307, Location=other.origin + "/stolen")
        form = {name: values[0] for name, values in parse_qs(body).items()}
        self.token(form)

    def is_client(self, form):
        if "secret" not in FAULTS:
            return form.get("client_id") in CLIENTS
        given = base64.b64decode((self.headers.get("Authorization") or "").removeprefix("Basic ")).decode()
        return given.endswith(":cl1ent-s3cret")

    def token(self, form):
        refuse = lambda error: self.reply(400, {"error": error})
        if not self.is_client(form):
            return self.reply(401, {"error": "invalid_client"})
        if form.get("resource") != resource.origin + "/mcp":
            return refuse("invalid_target")
        if form["grant_type"] == "refresh_token":
            scope = REFRESH.pop(form["refresh_token"], None)
            if scope is None:
                return refuse("invalid_grant")
            return self.issue(scope)
        asked = CODES.pop(form.get("code"), None)
        if asked is None or form.get("redirect_uri") != asked["redirect_uri"]:
            return refuse("invalid_grant")
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if challenge != asked["code_challenge"]:
            return refuse("invalid_grant")
        self.issue(asked.get("scope", ""))

    def issue(self, scope):
        access, refresh = "access-" + secrets.token_urlsafe(), "refresh-" + secrets.token_urlsafe()
        TOKENS[access], REFRESH[refresh] = scope.split(), scope
        life = 0 if "short" in FAULTS else 3600
        self.reply(200, {
            "access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": life, "scope": scope,
        })


def serve(handler):
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.origin = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


resource, issuer, other = serve(Resource), serve(Issuer), serve(Issuer)
STATE["issuer"] = issuer.origin
print(json.dumps([resource.origin, issuer.origin, other.origin]), flush=True)
sys.stdin.read()
