//! Nothing of its own: the tests are in `it/`.
