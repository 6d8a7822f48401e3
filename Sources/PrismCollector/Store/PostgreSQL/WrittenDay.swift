/// The table of `reports` that is written today, for one reader.
///
/// It has an index of ids by ranges of pages, which PostgreSQL brings up to date once a minute. Until then a question reads all
/// pages that came since. So a reader brings it up to date first: that reads the new pages once, and not with each question.
struct WrittenDay {
  /// Of the question that `summarize` takes.
  static let columns = """
    today.name, pg_relation_size(to_regclass(today.name)) / current_setting('block_size')::bigint,
      (SELECT first_report FROM days WHERE day = today.day), (today.day - 1)::text
      FROM (SELECT day, 'reports_' || to_char(day, 'YYYYMMDD') AS name
        FROM (SELECT (now() AT TIME ZONE 'UTC')::date AS day) utc) today
    """

  /// The index is brought up to date behind as many new pages.
  static let pages: Int64 = 1024
  /// Of an index that someone else brings up to date, or of a table that is vacuumed.
  private static let lockMilliseconds = 50

  private var table = ""
  /// Up to here the index was brought up to date; `.max`: the role may not.
  private(set) var summarized: Int64 = 0
  private var firstReport = Int64.max
  private var dayBefore = ""

  /// - Parameter column: of `columns`, the first one.
  mutating func summarize(
    _ found: PostgreSQLResult, from column: Int, _ connection: PostgreSQLConnection, by deadline: Deadline
  ) throws(PostgreSQLError) {
    let (name, pages) = (found.text(0, column), found.int(0, column + 1))
    if name != table || pages < summarized && summarized != .max { (table, summarized) = (name, 0) }
    firstReport = found.isNull(0, column + 2) ? .max : found.int(0, column + 2)
    dayBefore = found.text(0, column + 3)
    guard summarized != .max, pages - summarized >= Self.pages else { return }
    summarized = pages
    do throws(PostgreSQLError) {
      try connection.execute(
        """
        SET LOCAL lock_timeout = \(Self.lockMilliseconds); SELECT brin_summarize_new_values('\(name)_brin')
        """, by: deadline)
    } catch {
      if error.endsConnection { throw error }
      if error.kind != .refused(state: "55P03") { summarized = .max }
    }
  }

  /// The day from which on reports of this id and later ones were received, if they are of today's: a transaction that began
  /// before midnight writes into the day before.
  func since(_ id: Int64) -> String? { id >= firstReport ? dayBefore : nil }
}
