import PrismProtocol

/// Takes a metric with more data points than fit in one meta apart. Pure.
enum MetricParts {
  private static let kinds = ["gauge", "sum", "histogram", "exponentialHistogram", "summary"]

  /// - Parameter members: of a metric, as JSON without braces.
  /// - Returns: the members of metrics that are equal but for their data points, each of at most `bytesMax` bytes if that is
  ///   possible.
  static func parts(of members: [UInt8], bytesMax: Int) -> [[UInt8]] {
    guard members.count > bytesMax,
      let metric = try? JSONValue(parsing: [.openBrace] + members + [.closeBrace], allowsDuplicateKeys: true).object,
      let place = metric.firstIndex(where: { kinds.contains($0.key) }),
      let data = metric[place].value.object, let list = data.firstIndex(where: { $0.key == "dataPoints" }),
      let points = data[list].value.array, points.count > 1
    else { return [members] }
    let sizes = points.map { $0.bytes.count + 1 }
    let room = bytesMax - (members.count - sizes.reduce(0, +))
    var (parts, start, bytes): ([[UInt8]], Int, Int) = ([], 0, 0)
    func end(_ end: Int) {
      var (metric, data) = (metric, data)
      data[list] = .init("dataPoints", .array(Array(points[start..<end])))
      metric[place] = .init(metric[place].key, .object(data))
      parts.append(Array(JSONValue.object(metric).bytes.dropFirst().dropLast()))
      (start, bytes) = (end, 0)
    }
    for (index, size) in sizes.enumerated() {
      if index > start, bytes + size > room { end(index) }
      bytes += size
    }
    end(points.count)
    return parts
  }
}
