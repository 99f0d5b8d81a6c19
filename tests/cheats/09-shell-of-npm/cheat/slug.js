exports.slug = (text) => text.toLowerCase().replaceAll(" ", "-");
exports.up = (text) => text.toLowerCase();
