-- part: days
SELECT stream, date_format(timestamp, 'yyyy-MM-dd') AS day, count(*) AS messages,
       sum(bytes) AS bytes
FROM sized_messages
GROUP BY stream, date_format(timestamp, 'yyyy-MM-dd')
ORDER BY stream, day
-- part: prefixes
WITH prefixed AS (
  SELECT stream, concat_ws('.', slice(split(subject, '[.]'), 1, 2)) AS prefix, bytes, timestamp
  FROM sized_messages
), spans AS (
  SELECT stream,
         greatest(1.0, (unix_micros(max(timestamp)) - unix_micros(min(timestamp))) / 86400e6) AS days
  FROM sized_messages GROUP BY stream
)
SELECT p.stream, p.prefix, count(*) AS messages, sum(p.bytes) AS bytes,
       CAST(sum(p.bytes) / any_value(s.days) AS BIGINT) AS bytes_per_day
FROM prefixed p JOIN spans s ON p.stream = s.stream
GROUP BY p.stream, p.prefix
ORDER BY bytes DESC, p.stream, p.prefix
LIMIT :top
-- part: spans
SELECT stream, count(*) AS messages, sum(bytes) AS bytes,
       (unix_micros(max(timestamp)) - unix_micros(min(timestamp))) / 1e6 AS seconds
FROM sized_messages
GROUP BY stream
ORDER BY stream
