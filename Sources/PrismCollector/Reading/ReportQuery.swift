public import PrismBase
import PrismOutputs
import PrismProtocol

/// The reports that a person or a program asks for, read from the store, whether the collector runs or not.
public struct ReportQuery: Sendable {
  private static let limits = 1...1_000_000_000

  private var filter = ReportFilter(scope: .everything)
  /// The most reports; nil: 1,000, and it is said how many more there are.
  private var limit: Int?
  private var format = ExportFormat.ndjson

  /// Asks for the first 1,000 reports, the oldest first.
  public init() {}

  /// Takes one option of the command line. - Parameter name: without its dashes.
  /// - Throws: a value that is not allowed.
  public mutating func take(_ name: String, _ value: String) throws(Failure) {
    switch name {
    case "namespace": filter.namespace = value
    case "type": filter.type = value
    case "device": filter.device = value
    case "kind":
      do throws(CollectorRefusal) { filter.kind = try ReportFilter.kind(value) } catch {
        throw .usage("--\(error.message)")
      }
    case "since": filter.since = try Self.time(name, value)
    case "until": filter.until = try Self.time(name, value)
    case "time":
      guard let axis = ReportFilter.Axis(rawValue: value) else {
        throw .usage("--time: must be created or received")
      }
      filter.axis = axis
    case "newest": filter.isNewestFirst = true
    case "meta": try add(value)
    case "limit":
      guard let limit = Int(value), Self.limits.contains(limit) else {
        throw .usage("--limit: must be 1 to \(Self.limits.upperBound)")
      }
      self.limit = limit
    default:
      guard let format = ExportFormat(rawValue: value) else {
        throw .usage("--\(name): must be ndjson or csv")
      }
      self.format = format
    }
  }

  private mutating func add(_ text: String) throws(Failure) {
    guard filter.metas.count < MetaCondition.countMax else {
      throw .usage("--meta: at most \(MetaCondition.countMax) conditions are taken")
    }
    do throws(MetaCondition.Fault) { filter.metas.append(try MetaCondition(text)) } catch {
      throw .usage("--meta: a condition \(error.reason); write it as 'KEY.KEY >= VALUE'")
    }
  }

  private static func time(_ name: String, _ text: String) throws(Failure) -> Int64 {
    do throws(WrittenTime.Fault) {
      return try WrittenTime.milliseconds(text, now: SystemTime().unixMilliseconds)
    } catch { throw .usage("--\(name): \(error.message)") }
  }

  /// Reads page after page. For CSV that is done twice: the first line has all fields.
  /// - Parameters:
  ///   - note: gets the share of the reports that is read, again and again.
  ///   - write: takes a part of the answer; false ends the reading.
  /// - Returns: a line for standard error about further reports; empty: there are no further ones, or a limit was given.
  public consuming func run(
    _ options: CollectorOptions, note: (Double) -> Void = { _ in }, write: ([UInt8]) -> Bool
  ) async throws(Failure) -> String {
    if let since = filter.since, let until = filter.until, since >= until {
      throw .usage("--until: must be later than --since")
    }
    let reader = options.storeReader
    let scan = ReportScan(queries: reader, time: SystemTime())
    var lines = ExportLines(format)
    if format == .csv {
      var ids: ClosedRange<Int64>?
      try await forEachPage(scan, reader.page, note) { page in
        lines.note(page)
        for report in page { ids = min(ids?.lowerBound ?? .max, report.id)...max(ids?.upperBound ?? 0, report.id) }
        return !lines.isOver
      }
      if lines.isOver { throw .usage(ExportLines.overCause) }
      guard write(lines.head()), let ids else { return "" }
      // Those that came meanwhile are not among them.
      (filter.after, filter.before) = (ids.lowerBound - 1, ids.upperBound + 1)
    }
    var (last, isWritten, count): (Int64?, Bool, Int) = (nil, true, 0)
    try await forEachPage(scan, reader.page, note) { page in
      (last, count) = (page.last?.id, count + page.count)
      isWritten = write(page.flatMap { lines.line($0) })
      return isWritten
    }
    // With fewer, further ones came while they were read.
    guard limit == nil, isWritten, count >= ReportFilter.limits.upperBound, let last else { return "" }
    (filter.after, filter.before) = filter.isNewestFirst ? (0, last) : (last, nil)
    var counting = ReportCounting(filter, ReportGrouping(bucketMilliseconds: ReportGrouping.wholeTime))
    repeat {
      note(counting.share)
      do throws(StoreFailure) { try await counting.goOn(scan, within: Self.partBudget) } catch {
        throw Self.unreadable(error)
      }
    } while counting.goesOn
    let more = counting.counts.reduce(0) { $0 + $1.count }
    return more == 0 ? "" : "prism-collector: \(more) more reports are not printed: --limit \(1000 + more) has them\n"
  }

  /// Between two notes about how far it is.
  private static let partBudget: Duration = .milliseconds(500)

  private static func unreadable(_ failure: StoreFailure) -> Failure {
    .unavailable("the store can't be read: \(failure)")
  }

  /// - Parameter take: false ends the reading.
  private func forEachPage(
    _ scan: ReportScan, _ read: (ReportFilter) async throws(StoreFailure) -> [StoredReport], _ note: (Double) -> Void,
    _ take: ([StoredReport]) -> Bool
  ) async throws(Failure) {
    var left = limit ?? 1000
    do throws(StoreFailure) {
      var (walk, reach) = (try await scan.walk(filter, oldestFirst: !filter.isNewestFirst), ReportScan.Reach.whole)
      repeat {
        note(walk.share)
        reach = try await scan.goOn(&walk, filter, within: Self.partBudget) { (part) throws(StoreFailure) in
          var part = part
          while left > 0 {
            part.limit = min(left, ReportFilter.limits.upperBound)
            let page = try await read(part)
            guard let last = page.last else { return true }
            guard take(page) else { return false }
            left -= page.count
            guard ReportPage.mayBeCut(page, limit: part.limit) else { return true }
            if part.isNewestFirst { part.before = last.id } else { part.after = last.id }
          }
          return false
        }
      } while reach.timeIsUp
    } catch { throw Self.unreadable(error) }
  }
}
