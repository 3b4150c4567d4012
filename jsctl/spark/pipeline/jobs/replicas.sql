-- part: differing
SELECT seq, count(*) AS copies, count(DISTINCT hash) AS contents
FROM replicas
GROUP BY seq
HAVING count(*) < :peers OR count(DISTINCT hash) > 1
ORDER BY seq
LIMIT :top
-- part: count
SELECT count(*) AS differing FROM (
  SELECT seq FROM replicas GROUP BY seq HAVING count(*) < :peers OR count(DISTINCT hash) > 1
)
-- part: copies
SELECT r.peer, r.seq, r.hash FROM replicas r
WHERE r.seq IN (SELECT seq FROM differing)
-- part: peers
SELECT peer, count(*) AS messages, min(seq) AS first_seq, max(seq) AS last_seq,
       bit_xor(hash) AS digest
FROM replicas GROUP BY peer ORDER BY peer
