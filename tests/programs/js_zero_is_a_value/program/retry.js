const DEFAULTS = { retries: 3, delay: 100 };

function settings(given = {}) {
  return {
    retries: given.retries || DEFAULTS.retries,
    delay: given.delay || DEFAULTS.delay,
  };
}

module.exports = { settings };
