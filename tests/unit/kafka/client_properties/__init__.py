"""Client properties: each part of the translation, and the whole against both clients' words."""
