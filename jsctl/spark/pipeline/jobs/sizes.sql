-- part: sizes
SELECT stream, CAST(pow(2, ceil(log2(greatest(1, length(data))))) AS BIGINT) AS up_to,
       count(*) AS messages, sum(length(data)) AS bytes
FROM messages
GROUP BY stream, CAST(pow(2, ceil(log2(greatest(1, length(data))))) AS BIGINT)
ORDER BY stream, up_to
-- part: headers
WITH totals AS (SELECT stream, count(*) AS messages FROM messages GROUP BY stream),
names AS (
  SELECT stream, explode(map_entries(headers)) AS entry FROM messages WHERE headers IS NOT NULL
)
SELECT n.stream, n.entry.key AS header, count(*) AS messages,
       count(*) / any_value(t.messages) AS share,
       CAST(avg(length(array_join(n.entry.value, ''))) AS BIGINT) AS mean_bytes
FROM names n JOIN totals t ON n.stream = t.stream
GROUP BY n.stream, n.entry.key
ORDER BY messages DESC, n.stream, header
LIMIT :top
-- part: sample
SELECT stream, subject, data
FROM (SELECT stream, subject, data, row_number() OVER (PARTITION BY stream ORDER BY seq) AS place,
             count(*) OVER (PARTITION BY stream) AS total
      FROM messages)
WHERE place % greatest(1, CAST(total / :sample AS BIGINT)) = 0
LIMIT :most
