INSERT INTO customer (name, country) VALUES ('Ann', 'NO'), ('Bob', NULL);
SELECT name, COALESCE(country, '??') FROM customer ORDER BY name;
