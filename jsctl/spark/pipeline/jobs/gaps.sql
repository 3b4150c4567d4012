-- part: gaps
-- Neighbours are looked for in buckets side by side; one window over everything would be one task.
WITH bucketed AS (
  SELECT stream, seq, timestamp, CAST(seq / 100000 AS BIGINT) AS bucket FROM messages
), inner_gaps AS (
  SELECT stream, lag(seq) OVER w + 1 AS first_seq, seq - 1 AS last_seq,
         lag(timestamp) OVER w AS before, timestamp AS after
  FROM bucketed
  WINDOW w AS (PARTITION BY stream, bucket ORDER BY seq)
), ends AS (
  SELECT stream, bucket, min(seq) AS low, max(seq) AS high,
         min_by(timestamp, seq) AS low_time, max_by(timestamp, seq) AS high_time
  FROM bucketed GROUP BY stream, bucket
), outer_gaps AS (
  SELECT stream, lag(high) OVER v + 1 AS first_seq, low - 1 AS last_seq,
         lag(high_time) OVER v AS before, low_time AS after
  FROM ends
  WINDOW v AS (PARTITION BY stream ORDER BY bucket)
)
SELECT stream, first_seq, last_seq, last_seq - first_seq + 1 AS missing, before, after
FROM (SELECT * FROM inner_gaps UNION ALL SELECT * FROM outer_gaps)
WHERE first_seq IS NOT NULL AND first_seq <= last_seq
ORDER BY missing DESC, stream, first_seq
LIMIT :top
-- part: ranges
SELECT stream, count(*) AS messages, min(seq) AS first_seq, max(seq) AS last_seq
FROM messages GROUP BY stream ORDER BY stream
-- part: removals
SELECT get_json_object(body, '$.subject') AS subject, get_json_object(body, '$.request') AS request,
       get_json_object(body, '$.response') AS response,
       get_json_object(body, '$.timestamp') AS at, get_json_object(body, '$.client.name') AS client
FROM telemetry
WHERE subject = 'jsctl.telemetry.advisory.ADVISORY.API'
  AND (get_json_object(body, '$.subject') LIKE '%.STREAM.PURGE.%'
       OR get_json_object(body, '$.subject') LIKE '%.STREAM.MSG.DELETE.%')
ORDER BY at
