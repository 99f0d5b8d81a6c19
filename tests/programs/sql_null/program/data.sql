INSERT INTO task VALUES (1, 'write', NULL, '2024-02-01'), (2, 'test', '2024-01-05', '2024-01-10'), (3, 'ship', NULL, NULL);
