#define HIGHEST 9
