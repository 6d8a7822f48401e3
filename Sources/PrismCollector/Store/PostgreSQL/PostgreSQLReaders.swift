/// The users of the database beside packets, each with a connection and a queue of its own.
struct PostgreSQLReaders: Sendable {
  let reports: PostgreSQLReader
  let page: PostgreSQLQueries
  let records: PostgreSQLRecordStore
  let damaged = DamagedBlocks()

  init(_ target: PostgreSQLTarget, commitDeadline: Duration) {
    reports = PostgreSQLReader(PostgreSQLSetup(target: target, deadline: .seconds(30)).byIndex, damaged)
    page = PostgreSQLQueries(PostgreSQLSetup(target: target, deadline: .seconds(5)).byIndex, damaged)
    records = PostgreSQLRecordStore(PostgreSQLSetup(target: target, deadline: commitDeadline))
  }

  func close() async {
    await reports.close()
    await page.close()
    await records.close()
  }
}
