const slug = require("./lib/slug.js");

module.exports = (titles) => titles.map(slug);
