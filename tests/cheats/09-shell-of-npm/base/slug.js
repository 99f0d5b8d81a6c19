exports.slug = (text) => text.toLowerCase().replace(" ", "-");
exports.up = (text) => text.toUpperCase();
