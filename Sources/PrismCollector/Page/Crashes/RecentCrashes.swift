/// The newest crashes by their report, each as the row of it that says most.
struct RecentCrashes {
  private struct Key: Hashable {
    let device: String, namespace: String, reportID: String
  }

  static let countMax = 8192

  private var crashes: [Key: CrashReport] = [:]
  private var order: [Key] = []
  private var oldest = 0

  /// Notes a row of a crash, without its frames. - Returns: the other row of its report; nil: it is the first.
  mutating func exchange(_ crash: CrashReport) -> CrashReport? {
    let key = Key(device: crash.device, namespace: crash.namespace, reportID: crash.reportID)
    var noted = crash
    noted.frames = []
    if let other = crashes[key] {
      if crash.saysMore(than: other) { crashes[key] = noted }
      return other
    }
    crashes[key] = noted
    if order.count < Self.countMax {
      order.append(key)
    } else {
      crashes[order[oldest]] = nil
      order[oldest] = key
      oldest = (oldest + 1) % Self.countMax
    }
    return nil
  }
}
