-- part: consumers
WITH states AS (
  SELECT get(split(subject, '[.]'), 3) AS stream, get(split(subject, '[.]'), 4) AS consumer, ts_ns,
         try_cast(get_json_object(body, '$.info.delivered.consumer_seq') AS BIGINT) AS delivered,
         try_cast(get_json_object(body, '$.info.num_redelivered') AS BIGINT) AS pending_again,
         try_cast(get_json_object(body, '$.info.num_ack_pending') AS BIGINT) AS ack_pending,
         try_cast(get_json_object(body, '$.info.delivered.stream_seq') AS BIGINT) AS reached
  FROM telemetry WHERE subject LIKE 'jsctl.telemetry.consumer.%'
)
SELECT stream, consumer, max_by(delivered, ts_ns) AS delivered,
       max_by(pending_again, ts_ns) AS redelivering, max(pending_again) AS redelivering_max,
       max_by(ack_pending, ts_ns) AS ack_pending,
       max_by(pending_again, ts_ns) / greatest(1, max_by(delivered, ts_ns)) AS share
FROM states
GROUP BY stream, consumer
ORDER BY share DESC, redelivering_max DESC, stream, consumer
LIMIT :top
-- part: poison
SELECT get_json_object(body, '$.stream') AS stream, get_json_object(body, '$.consumer') AS consumer,
       try_cast(get_json_object(body, '$.stream_seq') AS BIGINT) AS seq,
       max(try_cast(get_json_object(body, '$.deliveries') AS BIGINT)) AS deliveries,
       max(get_json_object(body, '$.timestamp')) AS at
FROM telemetry
WHERE subject LIKE 'jsctl.telemetry.advisory.ADVISORY.CONSUMER.MAX_DELIVERIES.%'
   OR subject LIKE 'jsctl.telemetry.advisory.ADVISORY.CONSUMER.MSG_TERMINATED.%'
GROUP BY get_json_object(body, '$.stream'), get_json_object(body, '$.consumer'),
         try_cast(get_json_object(body, '$.stream_seq') AS BIGINT)
ORDER BY deliveries DESC, stream, consumer, seq
LIMIT :top
-- part: latency
SELECT get_json_object(body, '$.stream') AS stream, get_json_object(body, '$.consumer') AS consumer,
       count(*) AS samples,
       percentile_approx(try_cast(get_json_object(body, '$.ack_time') AS BIGINT), 0.5) / 1e9 AS p50_s,
       percentile_approx(try_cast(get_json_object(body, '$.ack_time') AS BIGINT), 0.99) / 1e9 AS p99_s,
       max(try_cast(get_json_object(body, '$.ack_time') AS BIGINT)) / 1e9 AS max_s
FROM telemetry
WHERE subject LIKE 'jsctl.telemetry.advisory.METRIC.CONSUMER.ACK.%'
GROUP BY get_json_object(body, '$.stream'), get_json_object(body, '$.consumer')
ORDER BY p99_s DESC
LIMIT :top
