public import PrismBase

extension Logger {
  /// - Parameter write: takes every line.
  public convenience init(
    level: Level = .info, format: Format = .text, toJournal: Bool = false, time: any TimeSource = SystemTime(),
    write: @escaping @Sendable (String) -> Void
  ) {
    self.init(level: level, format: format, toJournal: toJournal, time: time) {
      write($0)
      return true
    }
  }
}
