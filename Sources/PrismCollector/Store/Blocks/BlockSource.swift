/// The blocks of one store, for the one queue that reads them. All that is read within one `snapshot` is of one state.
protocol BlockSource {
  associatedtype Failure: Error

  func snapshot<Result>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result

  /// The heads of blocks that have ids of a range, in the order of the ids or the other way.
  func heads(_ ids: ClosedRange<Int64>, isNewestFirst: Bool, limit: Int) throws(Failure) -> [BlockHead]

  /// nil: there is no such block.
  func body(of block: Int64) throws(Failure) -> [UInt8]?

  /// - Parameter received: when its report was received, milliseconds since 1970.
  /// - Returns: nil: it is not there, or not what was stored.
  func payload(of report: Int64, received: Int64) throws(Failure) -> [UInt8]?
}
