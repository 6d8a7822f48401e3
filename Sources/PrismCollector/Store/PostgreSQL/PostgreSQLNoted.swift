/// The names and texts of the day that a replica has written already.
struct PostgreSQLNoted {
  var types = PostgreSQLTypes()
  var contexts = PostgreSQLContexts()

  /// Begins a transaction. - Parameter received: its time, microseconds since 2000.
  mutating func begin(received: Int64) {
    types.begin(received: received)
    contexts.begin(received: received)
  }
}
