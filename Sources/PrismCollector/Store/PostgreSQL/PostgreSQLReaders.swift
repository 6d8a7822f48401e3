/// The users of the database beside packets, each with a connection and a queue of its own.
struct PostgreSQLReaders: Sendable {
  let reports: PostgreSQLReader
  let page: PostgreSQLQueries
  let records: PostgreSQLRecordStore

  init(_ target: PostgreSQLTarget, commitDeadline: Duration) {
    reports = PostgreSQLReader(PostgreSQLSetup(target: target, deadline: .seconds(30)).byIndex)
    page = PostgreSQLQueries(PostgreSQLSetup(target: target, deadline: .seconds(5)))
    records = PostgreSQLRecordStore(PostgreSQLSetup(target: target, deadline: commitDeadline))
  }

  func close() async {
    await reports.close()
    await page.close()
    await records.close()
  }
}
