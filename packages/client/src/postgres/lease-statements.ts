/**
 * The columns of an entry, all as text, because pg's parsing of numbers depends on settings of the program. An entry
 * that was renewed just as it expired is returned with 1 ms left, so that it is soon read again.
 */
const columns = `e.name, e.id, e.ticket::text AS ticket, e.holder, e.mode, e.permits::text, e.ttl_ms::text, e.data,
  greatest(1, extract(epoch FROM e.expires_at - clock_timestamp()) * 1000)::text AS expires_in_ms`;

/**
 * One statement for each call, each its own transaction. An expired row counts as gone only if the same statement
 * deleted it: when a deletion and a renewal meet at one row, the later one waits for the row lock and then checks the
 * row again.
 */
export const leaseStatements = {
  enter: `SELECT entered.own_ticket::text AS own_ticket, ${columns}
FROM public.tenure_enter($1, $2, $3, $4, $5::integer, $6::bigint, $7, $8::boolean) AS entered
CROSS JOIN LATERAL (SELECT (entered.entry).*) AS e ORDER BY e.ticket`,

  list: `WITH gone AS (
  DELETE FROM public.tenure_entries WHERE name = $1 AND expires_at <= clock_timestamp() RETURNING ticket
), told AS (
  SELECT pg_notify('tenure_leases', $1) FROM (SELECT FROM gone LIMIT 1) AS any_gone
)
SELECT ${columns} FROM public.tenure_entries AS e
WHERE e.name = $1 AND e.ticket NOT IN (SELECT ticket FROM gone) AND (SELECT count(*) FROM told) >= 0
ORDER BY e.ticket`,

  renew: `UPDATE public.tenure_entries AS e
SET ttl_ms = asked.ttl_ms, expires_at = clock_timestamp() + asked.ttl_ms * interval '1 millisecond'
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS asked (name, id, ticket, ttl_ms)
WHERE e.name = asked.name AND e.ticket = asked.ticket AND e.id = asked.id AND e.expires_at > clock_timestamp()
RETURNING e.name, e.id, e.ticket::text AS ticket`,

  leave: `DELETE FROM public.tenure_entries WHERE name = $1 AND id = $2 AND ($3::bigint = 0 OR ticket = $3::bigint)
RETURNING (expires_at > clock_timestamp())::text AS lived`,

  update: `UPDATE public.tenure_entries SET data = $4
WHERE name = $1 AND id = $2 AND ticket = $3::bigint AND expires_at > clock_timestamp() RETURNING name`,
};
