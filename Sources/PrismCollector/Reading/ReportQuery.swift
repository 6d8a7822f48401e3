import PrismBase
import PrismProtocol

/// The reports that a person or a program asks for, read from the store, whether the collector runs or not.
public struct ReportQuery: Sendable {
  /// The reason why a question is not answered, or a command has not done what it was asked, and the exit code.
  public struct Fault: Error, Equatable {
    /// In words, with what is allowed.
    public let message: String
    /// 64 for the question, 69 for the store, 1 for a refusal.
    public let exitCode: Int32

    package init(message: String, exitCode: Int32) { (self.message, self.exitCode) = (message, exitCode) }
  }

  private static let limits = 1...1_000_000_000

  private var filter = ReportFilter(scope: .everything)
  /// The most reports; nil: 1,000, and it is said how many more there are.
  private var limit: Int?
  private var format = ExportFormat.ndjson

  /// Asks for the first 1,000 reports, the oldest first.
  public init() {}

  /// Takes one option of the command line. - Parameter name: without its dashes.
  /// - Throws: a value that is not allowed.
  public mutating func take(_ name: String, _ value: String) throws(Fault) {
    switch name {
    case "namespace": filter.namespace = value
    case "type": filter.type = value
    case "device": filter.device = value
    case "kind": filter.kind = value
    case "since": filter.since = try Self.time(name, value)
    case "until": filter.until = try Self.time(name, value)
    case "time":
      guard let axis = ReportFilter.Axis(rawValue: value) else {
        throw Fault(message: "--time: must be created or received", exitCode: 64)
      }
      filter.axis = axis
    case "newest": filter.isNewestFirst = true
    case "meta": try add(value)
    case "limit":
      guard let limit = Int(value), Self.limits.contains(limit) else {
        throw Fault(message: "--limit: must be 1 to \(Self.limits.upperBound)", exitCode: 64)
      }
      self.limit = limit
    default:
      guard let format = ExportFormat(rawValue: value) else {
        throw Fault(message: "--\(name): must be ndjson or csv", exitCode: 64)
      }
      self.format = format
    }
  }

  private mutating func add(_ text: String) throws(Fault) {
    guard filter.metas.count < MetaCondition.countMax else {
      throw Fault(message: "--meta: at most \(MetaCondition.countMax) conditions are taken", exitCode: 64)
    }
    do throws(MetaCondition.Fault) { filter.metas.append(try MetaCondition(text)) } catch {
      throw Fault(message: "--meta: a condition \(error.reason); write it as 'KEY.KEY >= VALUE'", exitCode: 64)
    }
  }

  private static func time(_ name: String, _ text: String) throws(Fault) -> Int64 {
    do throws(WrittenTime.Fault) {
      return try WrittenTime.milliseconds(text, now: SystemTime().unixMilliseconds)
    } catch { throw Fault(message: "--\(name): \(error.message)", exitCode: 64) }
  }

  /// Reads page after page. For CSV that is done twice: the first line has all fields.
  /// - Parameter write: takes a part of the answer; false ends the reading.
  /// - Returns: a line for standard error about further reports; empty: there are no further ones, or a limit was given.
  public consuming func run(_ options: CollectorOptions, write: ([UInt8]) -> Bool) async throws(Fault) -> String {
    let reader = options.storeReader
    var lines = ExportLines(format)
    if format == .csv {
      var ids: ClosedRange<Int64>?
      try await forEachPage(reader.page) { page in
        lines.note(page)
        for report in page { ids = min(ids?.lowerBound ?? .max, report.id)...max(ids?.upperBound ?? 0, report.id) }
        return !lines.isOver
      }
      if lines.isOver { throw Fault(message: ExportLines.overCause, exitCode: 64) }
      guard write(lines.head()), let ids else { return "" }
      // Those that came meanwhile are not among them.
      (filter.after, filter.before) = (ids.lowerBound - 1, ids.upperBound + 1)
    }
    var (last, isWritten): (Int64?, Bool) = (nil, true)
    try await forEachPage(reader.page) { page in
      last = page.last?.id
      isWritten = write(page.flatMap { lines.line($0) })
      return isWritten
    }
    guard limit == nil, isWritten, let last else { return "" }
    (filter.after, filter.before) = filter.isNewestFirst ? (0, last) : (last, nil)
    do throws(StoreFailure) {
      let scan = ReportScan(queries: reader, time: SystemTime())
      let (counts, reach) = try await scan.counts(filter, .init(bucketMilliseconds: ReportGrouping.wholeTime))
      let more = counts.reduce(0) { $0 + $1.count }
      let least = reach.since == nil ? "" : "at least "
      let line = "prism-collector: \(least)\(more) more reports are not printed: --limit \(1000 + more) has them\n"
      return more == 0 ? "" : line
    } catch { throw Fault(message: "the store can't be read: \(error)", exitCode: 69) }
  }

  /// - Parameter take: false ends the reading.
  private func forEachPage(
    _ read: (ReportFilter) async throws(StoreFailure) -> [StoredReport], _ take: ([StoredReport]) -> Bool
  ) async throws(Fault) {
    var (filter, left) = (filter, limit ?? 1000)
    while left > 0 {
      filter.limit = min(left, ReportFilter.limits.upperBound)
      let page: [StoredReport]
      do throws(StoreFailure) { page = try await read(filter) } catch {
        throw Fault(message: "the store can't be read: \(error)", exitCode: 69)
      }
      guard let last = page.last, take(page) else { return }
      left -= page.count
      if filter.isNewestFirst { filter.before = last.id } else { filter.after = last.id }
    }
  }
}
