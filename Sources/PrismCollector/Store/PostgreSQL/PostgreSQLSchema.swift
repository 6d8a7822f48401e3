import PrismProtocol

/// The tables of a database on PostgreSQL (docs/collector.md, "PostgreSQL").
///
/// A group takes its reports' ids in blocks of 1,024 from a sequence, and marks with an advisory lock the lowest block that
/// it may take. So a reader knows which ids no open transaction can still fill (`prism_horizon`), and reads in the order of
/// ids without ever passing a report that commits later.
enum PostgreSQLSchema {
  static let version = 22
  /// The one that made the tables. Databases of builds before the first published version are not read.
  static let firstVersion = 22
  static let blockBits: Int64 = 10

  /// First numbers of this program's advisory locks with two numbers: "PR".
  static let lockClass = 20_562
  enum Lock: Int {
    case migration = 1
    case upkeep = 2
    case output = 3
  }

  /// Of an empty database: in the version that is the latest now.
  static let sql =
    tables + PostgreSQLBlocks.schema + RecordTables.postgreSQL + FleetSchema.postgreSQL + functions + takeGroup

  /// Steps from `firstVersion` on, each to the version behind it.
  static let migrations: [String] = []

  /// The row of `store_mark` says who this store is (`StoreMark`). `facts` are those of the database's service, as in the store
  /// on SQLite (`ServiceFacts`). `outputs` has the leader's row, and `output_dead` dead letters (`PostgreSQLOutputSource`).
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
    CREATE TABLE output_dead (output text, report bigint, cause text NOT NULL, noted timestamptz NOT NULL,
      is_requeued boolean NOT NULL DEFAULT false, PRIMARY KEY (output, report));
    CREATE TABLE replicas (replica text PRIMARY KEY, seen timestamptz NOT NULL);
    CREATE TABLE streams (id bigint GENERATED ALWAYS AS IDENTITY UNIQUE, device text COLLATE "C", namespace text COLLATE "C",
      kind "char", last_packet uuid, packets bigint NOT NULL DEFAULT 0, ledger text, received timestamptz NOT NULL,
      newest uuid, forgotten uuid, PRIMARY KEY (device, namespace, kind)) WITH (fillfactor = 60);
    CREATE TABLE packets (packet uuid, stream bigint, PRIMARY KEY (packet, stream)) PARTITION BY RANGE (packet);
    CREATE TABLE packets_other PARTITION OF packets DEFAULT;

    """

  private static let functions = """
    CREATE FUNCTION prism_id_start(milliseconds bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
      SELECT (lpad(to_hex(greatest(0, milliseconds)), 12, '0') || repeat('0', 20))::uuid
    $$;
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
  private static let firstSetID = PacketID(high: UInt64(PacketID.firstSetTime) << 16, low: 0).description

  /// An id from before those that are kept is too old also while no id is forgotten, if its stream has one of 30 days later.
  private static let takeGroup = """
    -- Letters: s stored, b stored with its chain broken, d duplicate, w its predecessor is missing, o too old.
    CREATE FUNCTION prism_take_group(d text[], n text[], k "char"[], p uuid[], dep uuid[], led text[], late boolean[],
      rows integer[], pending boolean[], OUT outcome text, OUT sids bigint[], OUT blocks bigint[], OUT received timestamptz)
    LANGUAGE plpgsql AS $$
    DECLARE
      sid bigint; last uuid; num bigint; top uuid; gone uuid; known boolean; r text; total bigint := 0; mark bigint;
      today date := (now() AT TIME ZONE 'UTC')::date;
    BEGIN
      outcome := ''; sids := '{}'; blocks := '{}'; received := now();
      FOR i IN 1 .. cardinality(p) LOOP
        SELECT s.id, s.last_packet, s.packets, s.newest, s.forgotten INTO sid, last, num, top, gone FROM streams s
          WHERE s.device = d[i] AND s.namespace = n[i] AND s.kind = k[i] FOR UPDATE;
        IF NOT FOUND THEN
          INSERT INTO streams (device, namespace, kind, received) VALUES (d[i], n[i], k[i], now()) ON CONFLICT DO NOTHING;
          SELECT s.id, s.last_packet, s.packets, s.newest, s.forgotten INTO sid, last, num, top, gone FROM streams s
            WHERE s.device = d[i] AND s.namespace = n[i] AND s.kind = k[i] FOR UPDATE;
        END IF;
        known := dep[i] IS NOT NULL
          AND (dep[i] = last OR EXISTS (SELECT FROM packets x WHERE x.packet = dep[i] AND x.stream = sid));
        IF last = p[i] OR EXISTS (SELECT FROM packets x WHERE x.packet = p[i] AND x.stream = sid) THEN r := 'd';
        ELSIF known THEN r := 's';
        ELSIF num > 0 AND p[i] < '\(firstSetID)' AND p[i] <= gone AND gone < '\(firstSetID)' THEN r := 'o';
        ELSIF num > 0 AND p[i] >= '\(firstSetID)' AND (p[i] <= top AND p[i] <= greatest(gone, (SELECT f.packet FROM forgotten f)) OR (
            p[i] < prism_id_start((extract(epoch FROM now()) * 1000)::bigint - \(PacketID.knownMilliseconds))
              AND p[i] < prism_id_start(('x' || lpad(left(replace(top::text, '-', ''), 12), 16, '0'))::bit(64)::bigint
                - \(PacketID.knownMilliseconds)))) THEN r := 'o';
        ELSIF dep[i] IS NULL THEN r := 's';
        ELSIF NOT pending[i] AND (num = 0 OR late[i]) THEN r := 'b';
        ELSE r := 'w';
        END IF;
        IF r IN ('s', 'b') THEN
          UPDATE streams s SET last_packet = p[i], packets = s.packets + 1, ledger = coalesce(led[i], s.ledger),
            received = now(), newest = greatest(s.newest, p[i]) WHERE s.device = d[i] AND s.namespace = n[i] AND s.kind = k[i];
          INSERT INTO packets VALUES (p[i], sid);
          total := total + rows[i];
        END IF;
        outcome := outcome || r; sids := sids || sid;
      END LOOP;
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
