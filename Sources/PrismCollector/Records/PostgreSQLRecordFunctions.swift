/// Functions for records that the server changes (docs/records.md, "Change records").
///
/// A transaction that changes records of the server's holds the namespace's advisory lock, and packets hold it shared. The
/// row of the sequence is locked from its first number to the commit. So numbers become visible in their order.
enum PostgreSQLRecordFunctions {
  /// First number of the advisory locks of namespaces; the second is a hash of the name.
  static let lockClass = PostgreSQLSchema.lockClass + 2

  static let schema = next + apply + change

  /// The last of `count` new numbers for a table. The row of `record_sequences` without a namespace has the number that a
  /// restored database leaps to (docs/backup.md).
  private static let next = """
    CREATE FUNCTION prism_next_records(n text, d text, t text, count bigint) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE number bigint;
    BEGIN
      INSERT INTO record_sequences AS s
        VALUES (n, count + coalesce((SELECT b.seq FROM record_sequences b WHERE b.namespace = ''), 0))
        ON CONFLICT (namespace) DO UPDATE SET seq = s.seq + count RETURNING s.seq INTO number;
      INSERT INTO record_tables VALUES (n, d, t, number, 0)
        ON CONFLICT (namespace, device, tab) DO UPDATE SET seq = excluded.seq;
      RETURN number;
    END $$;

    """

  /// The operations of one packet. An operation that meets a change of the server's holds if its device knew that one (`a`),
  /// or if it is later by its time. Else the server's change gets a new number.
  private static let apply = """
    CREATE FUNCTION prism_apply_records(n text, d text, t text[], l text[], k integer[], f text[], v bigint[], c bigint[],
      a bigint[], OUT given text[], OUT lost integer, OUT version bigint) LANGUAGE plpgsql AS $$
    DECLARE newest bigint; has_log boolean; known bigint; gone deleted_records%ROWTYPE; number bigint; named boolean; made text;
    BEGIN
      PERFORM pg_advisory_xact_lock_shared(\(lockClass), hashtext(n));
      SELECT s.seq INTO newest FROM record_sequences s WHERE s.namespace = n;
      has_log := FOUND;
      given := '{}'; lost := 0;
      FOR i IN 1 .. cardinality(t) LOOP
        made := NULL;
        known := CASE WHEN a[i] BETWEEN 0 AND newest THEN a[i] ELSE 0 END;
        IF k[i] = 3 THEN
          DELETE FROM records r WHERE r.namespace = n AND r.tab = t[i] AND r.device = d AND r.id = l[i]
            AND (r.seq <= known OR r.changed_time < c[i]);
          IF NOT FOUND AND has_log AND EXISTS (SELECT FROM records r
              WHERE r.namespace = n AND r.tab = t[i] AND r.device = d AND r.id = l[i]) THEN
            number := prism_next_records(n, d, t[i], 1);
            UPDATE records r SET seq = number, insert_seq = number
              WHERE r.namespace = n AND r.tab = t[i] AND r.device = d AND r.id = l[i];
            lost := lost + 1;
          END IF;
        ELSE
          gone := NULL;
          IF has_log THEN
            SELECT * INTO gone FROM deleted_records g
              WHERE g.namespace = n AND g.tab = t[i] AND g.device = d AND g.id = l[i];
          END IF;
          IF known < gone.seq AND c[i] <= gone.changed_time THEN
            number := prism_next_records(n, d, t[i], 1);
            UPDATE deleted_records g SET seq = number
              WHERE g.namespace = n AND g.tab = t[i] AND g.device = d AND g.id = l[i];
            lost := lost + 1;
            made := CASE WHEN gone.is_named THEN l[i] ELSE gone.server_id::text END;
          ELSE
            IF gone.server_id IS NULL THEN
              INSERT INTO records AS r (namespace, tab, device, id, fields, version, changed_time, received)
                VALUES (n, t[i], d, l[i], f[i], v[i], c[i], now())
                ON CONFLICT (namespace, tab, device, id) DO UPDATE SET fields = excluded.fields, version = excluded.version,
                  changed_time = excluded.changed_time, received = excluded.received, seq = 0, insert_seq = 0
                  WHERE r.seq <= known OR excluded.changed_time > r.changed_time
                RETURNING r.server_id, r.is_named INTO number, named;
            ELSE
              DELETE FROM deleted_records g WHERE g.namespace = n AND g.tab = t[i] AND g.device = d AND g.id = l[i];
              INSERT INTO records AS r (server_id, namespace, tab, device, id, fields, version, changed_time, received, is_named)
                OVERRIDING SYSTEM VALUE
                VALUES (gone.server_id, n, t[i], d, l[i], f[i], v[i], c[i], now(), gone.is_named)
                RETURNING r.server_id, r.is_named INTO number, named;
            END IF;
            IF number IS NULL THEN
              UPDATE records r SET seq = prism_next_records(n, d, t[i], 1)
                WHERE r.namespace = n AND r.tab = t[i] AND r.device = d AND r.id = l[i]
                RETURNING r.server_id, r.is_named INTO number, named;
              lost := lost + 1;
            END IF;
            made := CASE WHEN named THEN l[i] ELSE number::text END;
          END IF;
        END IF;
        given := given || made;
      END LOOP;
      SELECT coalesce(max(r.seq), 0) INTO version FROM record_tables r WHERE r.namespace = n AND r.device IN ('', d);
    END $$;

    """

  /// Changes of the server's. An id is that of the row, or a new one; fields that are NULL delete. Letters: i made, u changed,
  /// s says the same, x deleted, a absent.
  private static let change = """
    CREATE FUNCTION prism_change_records(n text, d text, t text, l text[], f text[], OUT letters text) LANGUAGE plpgsql AS $$
    DECLARE moment bigint := (extract(epoch FROM clock_timestamp()) * 1000)::bigint; number bigint; known records%ROWTYPE;
      gone deleted_records%ROWTYPE; last bigint;
    BEGIN
      letters := '';
      FOR i IN 1 .. cardinality(l) LOOP
        SELECT * INTO known FROM records r WHERE r.namespace = n AND r.tab = t AND r.device = d AND r.id = l[i] FOR UPDATE;
        IF NOT FOUND AND f[i] IS NULL THEN letters := letters || 'a';
        ELSIF known.fields = f[i] THEN letters := letters || 's';
        ELSE
          -- One block of numbers, so that the rows of the sequence and the table are written once.
          IF number IS NULL THEN number := prism_next_records(n, d, t, cardinality(l)) - cardinality(l); END IF;
          IF f[i] IS NULL THEN
            DELETE FROM records r WHERE r.server_id = known.server_id;
            INSERT INTO deleted_records VALUES (n, t, d, l[i], known.server_id, known.is_named,
              greatest(moment, known.changed_time + 1), number + i);
            letters := letters || 'x';
          ELSIF known.server_id IS NOT NULL THEN
            UPDATE records r SET fields = f[i], version = r.version + 1, changed_time = greatest(moment, r.changed_time + 1),
              received = now(), seq = number + i WHERE r.server_id = known.server_id;
            letters := letters || 'u';
          ELSE
            DELETE FROM deleted_records g WHERE g.namespace = n AND g.tab = t AND g.device = d AND g.id = l[i]
              RETURNING * INTO gone;
            IF gone.server_id IS NULL THEN
              INSERT INTO records (namespace, tab, device, id, fields, version, changed_time, received, is_named, seq, insert_seq)
                VALUES (n, t, d, l[i], f[i], 1, moment, now(), true, number + i, number + i);
            ELSE
              INSERT INTO records (server_id, namespace, tab, device, id, fields, version, changed_time, received, is_named, seq,
                insert_seq) OVERRIDING SYSTEM VALUE
                VALUES (gone.server_id, n, t, d, l[i], f[i], 1, greatest(moment, gone.changed_time + 1), now(), gone.is_named,
                  number + i, number + i);
            END IF;
            letters := letters || 'i';
          END IF;
        END IF;
      END LOOP;
      IF position('x' IN letters) > 0 THEN
        SELECT g.seq INTO last FROM deleted_records g WHERE g.namespace = n AND g.tab = t AND g.device = d
          ORDER BY g.seq DESC LIMIT 1 OFFSET \(RecordLog.deletionsMax);
        IF FOUND THEN
          DELETE FROM deleted_records g WHERE g.namespace = n AND g.tab = t AND g.device = d AND g.seq <= last;
          UPDATE record_tables r SET floor = last WHERE r.namespace = n AND r.device = d AND r.tab = t;
        END IF;
      END IF;
    END $$;

    """
}
