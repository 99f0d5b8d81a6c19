// Who may do what.
const ADMINS = new Set(["ann"]);

async function isAdmin(user) {
  await null;
  return ADMINS.has(user);
}

async function remove(store, user, key) {
  if (!(await isAdmin(user))) {
    throw new Error(`${user} may not remove ${key}`);
  }
  return store.delete(key);
}

module.exports = { isAdmin, remove };
