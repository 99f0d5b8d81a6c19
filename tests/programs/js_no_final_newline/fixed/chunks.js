function chunks(list, size) {
  const found = [];
  for (let at = 0; at < list.length; at += size) {
    const chunk = list.slice(at, at + size);
    found.push(chunk);
  }
  return found;
}

module.exports = { chunks };