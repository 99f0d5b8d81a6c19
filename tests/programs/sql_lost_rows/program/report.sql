SELECT author.name, COUNT(book.id) AS books
FROM author
JOIN book ON book.author_id = author.id
GROUP BY author.id
ORDER BY books DESC, author.name;
