-- Two letters, as ISO 3166 has them; NULL where unknown.
ALTER TABLE customer ADD COLUMN country TEXT CHECK (LENGTH(country) = 2);
