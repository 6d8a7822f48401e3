import PrismBase
import PrismHTTP
import Synchronization

/// The questions of readers that go on: what they found so far is kept until the same reader asks the same again.
final class RunningQuestions: Sendable {
  struct Key: Hashable {
    let reader: String, scope: Scope, path: String
    /// Without `within`, sorted.
    let query: [[String]]
  }

  /// All, and those of one reader. One of whose reader there are more takes the place of that one's oldest.
  static let (countMax, ofReaderMax) = (8, 4)
  /// All have as much memory as one may have, in numbers.
  private static let sizeMax = ReportCounting.numbersMax
  /// A reader who asked nothing for so long has left.
  static let timeout: Duration = .seconds(10)

  private let time: any TimeSource
  /// Each until a time of the uptime.
  private let kept = Mutex<[Key: (counting: ReportCounting, until: Duration)]>([:])

  init(time: any TimeSource) { self.time = time }

  var count: Int { kept.withLock { $0.count } }

  /// - Returns: the question as far as it came, which is kept no longer; nil: it begins.
  func take(_ key: Key) -> ReportCounting? { kept.withLock { $0.removeValue(forKey: key)?.counting } }

  /// Keeps a question until its next part. Where there is no place for it, it begins again.
  func keep(_ counting: ReportCounting, _ key: Key) {
    let until = time.uptime + Self.timeout
    kept.withLock { kept in
      kept[key] = nil
      let own = kept.filter { $0.key.reader == key.reader }.sorted { $0.value.until < $1.value.until }
      for (other, _) in own.dropLast(Self.ofReaderMax - 1) { kept[other] = nil }
      let size = kept.values.reduce(counting.size) { $0 + $1.counting.size }
      if kept.count < Self.countMax, size <= Self.sizeMax { kept[key] = (counting, until) }
    }
    Task { [weak self, time] in
      try? await time.sleep(until: until)  // no error: it is never cancelled
      self?.forget(key, at: until)
    }
  }

  /// Reports were erased: questions that found them begin again.
  func forget() { kept.withLock { $0 = [:] } }

  private func forget(_ key: Key, at time: Duration) {
    kept.withLock { kept in if kept[key]?.until == time { kept[key] = nil } }
  }
}

extension RunningQuestions.Key {
  init(_ request: PageRequest) {
    let query = request.http.query.filter { $0.name != "within" }.map { [$0.name, $0.value] }
    self.init(
      reader: request.reader?.name ?? "", scope: request.scope, path: request.http.path,
      query: query.sorted { $0.lexicographicallyPrecedes($1) })
  }
}
