-- part: top
SELECT stream, subject, count(*) AS messages, sum(bytes) AS bytes,
       count(*) / any_value(total) AS share
FROM (SELECT *, count(*) OVER (PARTITION BY stream) AS total FROM sized_messages)
GROUP BY stream, subject
ORDER BY messages DESC, stream, subject
LIMIT :top
-- part: skew
WITH counted AS (
  SELECT stream, subject, count(*) AS messages FROM sized_messages GROUP BY stream, subject
), ranked AS (
  SELECT *, row_number() OVER (PARTITION BY stream ORDER BY messages DESC, subject) AS place,
         count(*) OVER (PARTITION BY stream) AS subjects
  FROM counted
)
SELECT stream, any_value(subjects) AS subjects, sum(messages) AS messages,
       max(messages) / sum(messages) AS top_share,
       sum(CASE WHEN place <= greatest(1, ceil(subjects / 100)) THEN messages ELSE 0 END)
         / sum(messages) AS top_percent_share
FROM ranked
GROUP BY stream
ORDER BY stream
-- part: growth
WITH firsts AS (
  SELECT stream, subject, date_format(min(timestamp), 'yyyy-MM-dd') AS day
  FROM sized_messages GROUP BY stream, subject
)
SELECT stream, day, count(*) AS new_subjects,
       sum(count(*)) OVER (PARTITION BY stream ORDER BY day) AS subjects
FROM firsts
GROUP BY stream, day
ORDER BY stream, day
