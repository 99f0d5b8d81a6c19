// Loaded before the programs of others: what would listen on all addresses listens on 127.0.0.1.

const net = require("node:net");

const HOST = "127.0.0.1";
// The last step of every `listen`. Setting a host earlier makes it asynchronous, which callers do not expect.
const { _listen2: listen } = net.Server.prototype;
if (typeof listen !== "function") {
    throw new Error("this version of Node.js listens in another way");
}

net.Server.prototype._listen2 = function (address, port, type, ...rest) {
    const isOpen = !address && typeof port === "number" && port >= 0;
    return isOpen ? listen.call(this, HOST, port, 4, ...rest) : listen.call(this, address, port, type, ...rest);
};
