-- part: points
SELECT get(split(subject, '[.]'), 3) AS stream, get(split(subject, '[.]'), 4) AS consumer,
       ts_ns / 1e9 AS at, try_cast(get_json_object(body, '$.info.num_pending') AS BIGINT) AS pending
FROM telemetry WHERE subject LIKE 'jsctl.telemetry.consumer.%'
ORDER BY stream, consumer, at
-- part: summary
WITH states AS (
  SELECT get(split(subject, '[.]'), 3) AS stream, get(split(subject, '[.]'), 4) AS consumer, ts_ns,
         try_cast(get_json_object(body, '$.info.num_pending') AS BIGINT) AS pending
  FROM telemetry WHERE subject LIKE 'jsctl.telemetry.consumer.%'
), steps AS (
  SELECT *, (ts_ns - lag(ts_ns) OVER w) / 1e9 AS seconds, lag(pending) OVER w AS before
  FROM states WINDOW w AS (PARTITION BY stream, consumer ORDER BY ts_ns)
)
SELECT stream, consumer, count(*) AS looks, max_by(pending, ts_ns) AS pending,
       max(pending) AS pending_max,
       coalesce(sum(CASE WHEN before > 100 AND seconds < :hole THEN seconds END), 0) AS over_100_s,
       coalesce(sum(CASE WHEN before > 1000 AND seconds < :hole THEN seconds END), 0) AS over_1000_s,
       coalesce(sum(CASE WHEN before > 10000 AND seconds < :hole THEN seconds END), 0)
         AS over_10000_s,
       max(CASE WHEN seconds > 0 AND seconds < :hole THEN (before - pending) / seconds END)
         AS recovery_per_s
FROM steps
GROUP BY stream, consumer
ORDER BY pending_max DESC, stream, consumer
LIMIT :top
