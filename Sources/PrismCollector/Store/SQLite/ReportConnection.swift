import PrismSQLite

/// A connection that reads reports with their names and contexts, for the one queue that owns it.
final class ReportConnection {
  let connection: SQLiteConnection
  let names: NameReader
  private var known: (contexts: ContextReader, answers: ContextAnswers)?

  /// - Parameter settings: as SQL.
  init(path: String, vfs: String?, settings: String) throws(SQLiteError) {
    connection = try SQLiteConnection(.init(path: path, isReadOnly: true, vfs: vfs))
    try connection.execute(settings)
    names = try NameReader(connection)
  }

  func contexts() throws(SQLiteError) -> (contexts: ContextReader, answers: ContextAnswers) {
    if let known { return known }
    let contexts = try ContextReader(connection)
    let made = (contexts, try ContextAnswers(connection, contexts))
    known = made
    return made
  }

  /// Runs `body`, whose statement asks `questions`, and for the names of `filter`.
  func asking<Result>(
    _ questions: [ContextQuestion], _ filter: ReportFilter,
    _ body: (SQLiteConnection) throws(SQLiteError) -> Result
  ) throws(SQLiteError) -> Result {
    names.begin(filter)
    let answers = questions.isEmpty ? nil : try contexts().answers
    try answers?.begin(questions)
    let result = try body(connection)
    try names.end()
    try answers?.end()
    return result
  }
}
