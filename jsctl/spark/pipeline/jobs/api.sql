-- part: calls
SELECT get_json_object(body, '$.timestamp') AS at, get_json_object(body, '$.subject') AS subject,
       get_json_object(body, '$.client.user') AS user, get_json_object(body, '$.client.acc') AS account,
       get_json_object(body, '$.client.name') AS client,
       get_json_object(body, '$.client.host') AS host,
       substr(coalesce(get_json_object(body, '$.request'), ''), 1, 120) AS request,
       coalesce(get_json_object(get_json_object(body, '$.response'), '$.error.description'), '')
         AS error
FROM telemetry
WHERE subject = 'jsctl.telemetry.advisory.ADVISORY.API'
ORDER BY at DESC
LIMIT :most
