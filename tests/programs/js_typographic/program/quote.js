// “Quotes”, ‘single’ and "straight".
function quote(text) {
  return "\"" + text.trim() + "\"";
}

function single(text) {
  return "‘" + text.trim() + "’";
}

module.exports = { quote, single };
