function chunks(list, size) {
  const found = [];
  for (let at = 0; at < list.length; at += size) {
    const chunk = list.slice(at, at + size);
    found.push(list);
  }
  return found;
}

module.exports = { chunks };