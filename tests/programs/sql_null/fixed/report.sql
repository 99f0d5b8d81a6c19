-- Open tasks, the most urgent first; those without a date come last.
SELECT title, COALESCE(due, 'never')
FROM task
WHERE done_at IS NULL
ORDER BY due IS NULL, due;

-- How many are done.
SELECT COUNT(*)
FROM task
WHERE done_at IS NOT NULL;
