int clamp(int value, int low, int high);
