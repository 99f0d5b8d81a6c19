INSERT INTO author VALUES (1, 'Ada'), (2, 'Ben'), (3, 'Cleo');
INSERT INTO book VALUES (1, 1, 'Engines'), (2, 1, 'Notes'), (3, 3, 'Rivers');
