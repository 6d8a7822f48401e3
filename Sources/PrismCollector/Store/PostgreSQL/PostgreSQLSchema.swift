import PrismProtocol
import PrismSQL

/// The tables of a database on PostgreSQL (docs/collector.md, "PostgreSQL").
///
/// A group takes its reports' ids in blocks of 1,024 from a sequence, and marks with an advisory lock the lowest block that
/// it may take. So a reader knows which ids no open transaction can still fill (`prism_horizon`), and reads in the order of
/// ids without ever passing a report that commits later.
enum PostgreSQLSchema {
  static let version = firstVersion + migrations.count
  /// The one that made the tables. Databases of builds before the first published version are not read.
  static let firstVersion = 22
  static let blockBits: Int64 = 10

  enum Lock: Int {
    case migration = 1
    case upkeep = 2
    case output = 3

    /// Both numbers.
    var key: String { "\(PostgreSQLDriver.lockClass), \(rawValue)" }
  }

  /// Of an empty database: in the version that is the latest now.
  static let sql =
    tables + CopiedBlocks.schema + RecordTables.postgreSQL + FleetSchema.postgreSQL + functions + groups

  /// Steps from `firstVersion` on, each to the version behind it.
  static let migrations =
    [
      // 23: what becomes of a packet is no longer decided here. Dead letters are as on SQLite.
      """
      ALTER TABLE output_dead ALTER COLUMN is_requeued DROP DEFAULT,
        ALTER COLUMN is_requeued TYPE bigint USING is_requeued::integer,
        ALTER COLUMN noted TYPE bigint USING (extract(epoch FROM noted) * 1000)::bigint;
      ALTER TABLE output_dead RENAME COLUMN noted TO time;
      ALTER TABLE streams ADD COLUMN forgotten_unset uuid;
      UPDATE streams SET forgotten_unset = forgotten, forgotten = NULL WHERE forgotten < '\(firstSetID)';
      DROP FUNCTION prism_take_group;
      DROP FUNCTION prism_id_start;

      """ + groups
    ] + SchemaStep.postgreSQL

  /// The row of `store_mark` says who this store is (`StoreMark`). `facts` are those of the database's service, as in the store
  /// on SQLite (`ServiceFacts`). `outputs` has the leader's row, and `output_dead` dead letters (`DeadLetters`).
  private static let tables = """
    CREATE TABLE prism_schema (version integer NOT NULL);
    INSERT INTO prism_schema VALUES (0);
    CREATE TABLE store_mark (id bigint NOT NULL, life bigint NOT NULL);
    INSERT INTO store_mark
      SELECT ('x' || left(md5(gen_random_uuid()::text), 16))::bit(64)::bigint & \(Int64.max), 0;
    CREATE TABLE facts (name text PRIMARY KEY, value bigint NOT NULL);
    CREATE SEQUENCE report_blocks AS bigint;
    CREATE TABLE forgotten (packet uuid);
    INSERT INTO forgotten VALUES (NULL);
    CREATE TABLE days (day date PRIMARY KEY, first_report bigint NOT NULL);
    CREATE TABLE outputs (output text PRIMARY KEY, cursor bigint NOT NULL, seen timestamptz NOT NULL,
      epoch bigint NOT NULL DEFAULT 0, beat bigint NOT NULL DEFAULT 0, is_free boolean NOT NULL DEFAULT false);
    CREATE TABLE output_dead (output text, report bigint, cause text NOT NULL, time bigint NOT NULL,
      is_requeued bigint NOT NULL, is_delivered bigint NOT NULL DEFAULT 0, PRIMARY KEY (output, report));
    CREATE TABLE replicas (replica text PRIMARY KEY, seen timestamptz NOT NULL);
    CREATE TABLE streams (id bigint GENERATED ALWAYS AS IDENTITY UNIQUE, device text COLLATE "C", namespace text COLLATE "C",
      kind "char", last_packet uuid, packets bigint NOT NULL DEFAULT 0, ledger text, received timestamptz NOT NULL,
      newest uuid, forgotten uuid, forgotten_unset uuid, PRIMARY KEY (device, namespace, kind)) WITH (fillfactor = 60);
    CREATE TABLE packets (packet uuid, stream bigint, PRIMARY KEY (packet, stream)) PARTITION BY RANGE (packet);
    CREATE TABLE packets_other PARTITION OF packets DEFAULT;

    """

  private static let functions = """
    CREATE FUNCTION prism_day_start(day date) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
      SELECT (lpad(to_hex((day - date '1970-01-01')::bigint * 86400000), 12, '0') || repeat('0', 20))::uuid
    $$;
    -- Reports with ids below this one are final: those that are not visible now never will be.
    CREATE FUNCTION prism_horizon() RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE next bigint; open bigint;
    BEGIN
      SELECT last_value + is_called::integer INTO next FROM report_blocks;
      SELECT min((l.classid::bigint & 65535) << 32 | l.objid::bigint) INTO open FROM pg_locks l
        WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.classid::bigint >> 16 = 20562
          AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database());
      RETURN least(next, open) << 10;
    END $$;

    """

  /// The first id of a clock that was set.
  static let firstSetID = PacketID(high: UInt64(PacketID.firstSetTime) << 16, low: 0).description

  /// The two halves of a group's transaction: in between `PacketGroup` decides. Each statement of the first sees what was
  /// committed while it waited for its stream.
  private static let groups = """
    CREATE FUNCTION prism_lock_group(d text[], n text[], k "char"[], p uuid[], dep uuid[]) RETURNS TABLE (number bigint,
      count bigint, top uuid, gone uuid, unset uuid, day uuid, has_packet boolean, has_predecessor boolean)
    LANGUAGE plpgsql AS $$
    DECLARE last uuid;
    BEGIN
      FOR i IN 1 .. cardinality(p) LOOP
        SELECT s.id, s.last_packet, s.packets, s.newest, s.forgotten, s.forgotten_unset INTO number, last, count, top, gone, unset
          FROM streams s WHERE s.device = d[i] AND s.namespace = n[i] AND s.kind = k[i] FOR UPDATE;
        IF NOT FOUND THEN
          INSERT INTO streams (device, namespace, kind, received) VALUES (d[i], n[i], k[i], now()) ON CONFLICT DO NOTHING;
          SELECT s.id, s.last_packet, s.packets, s.newest, s.forgotten, s.forgotten_unset
            INTO number, last, count, top, gone, unset
            FROM streams s WHERE s.device = d[i] AND s.namespace = n[i] AND s.kind = k[i] FOR UPDATE;
        END IF;
        has_packet := last = p[i] OR EXISTS (SELECT FROM packets x WHERE x.packet = p[i] AND x.stream = number);
        has_predecessor := dep[i] IS NOT NULL
          AND (last = dep[i] OR EXISTS (SELECT FROM packets x WHERE x.packet = dep[i] AND x.stream = number));
        -- After the look-ups: a day that left in between is noted by then.
        SELECT f.packet INTO day FROM forgotten f;
        RETURN NEXT;
      END LOOP;
    END $$;
    CREATE FUNCTION prism_store_group(sids bigint[], p uuid[], led text[], total bigint, OUT blocks bigint[])
    LANGUAGE plpgsql AS $$
    DECLARE mark bigint; today date := (now() AT TIME ZONE 'UTC')::date;
    BEGIN
      FOR i IN 1 .. cardinality(p) LOOP
        UPDATE streams s SET last_packet = p[i], packets = s.packets + 1, ledger = coalesce(led[i], s.ledger),
          received = now(), newest = greatest(s.newest, p[i]) WHERE s.id = sids[i];
        INSERT INTO packets VALUES (p[i], sids[i]);
      END LOOP;
      blocks := '{}';
      IF total > 0 THEN
        SELECT last_value + is_called::integer INTO mark FROM report_blocks;
        PERFORM pg_advisory_xact_lock_shared((20562::bigint << 48) + mark);
        blocks := ARRAY (SELECT nextval('report_blocks') FROM generate_series(1, (total + 1023) / 1024));
        IF NOT EXISTS (SELECT FROM days x WHERE x.day = today) THEN
          -- Another replica may write lower ids into this day still.
          INSERT INTO days (day, first_report) VALUES (today, greatest(0, blocks[1] - 65536) << 10) ON CONFLICT DO NOTHING;
        END IF;
      END IF;
    END $$;

    """
}
