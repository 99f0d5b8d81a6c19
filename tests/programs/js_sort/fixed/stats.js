function percentile(values, percent) {
  const sorted = [...values].sort((left, right) => left - right);
  const index = Math.ceil((percent / 100) * sorted.length) - 1;
  return sorted[Math.max(index, 0)];
}

module.exports = { percentile };
