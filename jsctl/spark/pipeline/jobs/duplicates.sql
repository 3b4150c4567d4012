-- part: ids
SELECT stream, 'message id' AS kind, id AS value, count(*) AS times, min(seq) AS first_seq,
       max(seq) AS last_seq,
       (unix_micros(max(timestamp)) - unix_micros(min(timestamp))) / 1e6 AS apart_s
FROM (SELECT stream, seq, timestamp, headers['Nats-Msg-Id'][0] AS id FROM messages
      WHERE headers['Nats-Msg-Id'] IS NOT NULL)
GROUP BY stream, id
HAVING count(*) > 1
ORDER BY times DESC, stream, first_seq
LIMIT :top
-- part: payloads
SELECT stream, 'payload' AS kind, subject AS value, count(*) AS times, min(seq) AS first_seq,
       max(seq) AS last_seq,
       (unix_micros(max(timestamp)) - unix_micros(min(timestamp))) / 1e6 AS apart_s
FROM messages
WHERE length(data) > 0
GROUP BY stream, subject, xxhash64(data), length(data), md5(data)
HAVING count(*) > 1
ORDER BY times DESC, stream, first_seq
LIMIT :top
-- part: counts
WITH ids AS (
  SELECT stream, count(*) - count(DISTINCT headers['Nats-Msg-Id'][0]) AS repeated_ids
  FROM messages WHERE headers['Nats-Msg-Id'] IS NOT NULL GROUP BY stream
), payloads AS (
  SELECT stream, count(*) AS messages,
         count(*) FILTER (WHERE length(data) > 0)
         - count(DISTINCT subject, md5(data)) FILTER (WHERE length(data) > 0) AS repeated
  FROM messages GROUP BY stream
)
SELECT p.stream, p.messages, coalesce(i.repeated_ids, 0) AS repeated_ids,
       p.repeated AS repeated_payloads
FROM payloads p LEFT JOIN ids i ON p.stream = i.stream
ORDER BY p.stream
