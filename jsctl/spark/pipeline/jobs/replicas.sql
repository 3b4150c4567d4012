-- part: differing
SELECT seq FROM held
GROUP BY seq
HAVING count(*) < :peers OR count(DISTINCT hash) > 1
-- part: span
SELECT count(*) AS differing, min(seq) AS first_seq, max(seq) AS last_seq FROM suspects
-- part: confirmed
SELECT seq FROM held_again LEFT SEMI JOIN suspects USING (seq)
GROUP BY seq
HAVING count(*) < :peers OR count(DISTINCT hash) > 1
-- part: total
SELECT count(*) AS differing FROM confirmed
-- part: copies
SELECT held_again.peer, seq, held_again.hash
FROM held_again
LEFT SEMI JOIN (SELECT seq FROM confirmed ORDER BY seq LIMIT :top) shown USING (seq)
ORDER BY seq, peer
-- part: peers
SELECT peer, count(*) AS messages, min(seq) AS first_seq, max(seq) AS last_seq,
       bit_xor(hash) AS digest
FROM held
WHERE seq NOT IN (SELECT seq FROM suspects EXCEPT SELECT seq FROM confirmed)
GROUP BY peer ORDER BY peer
