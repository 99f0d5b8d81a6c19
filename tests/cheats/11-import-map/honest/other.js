exports.identity = (text) => text;
