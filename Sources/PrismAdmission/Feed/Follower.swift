import Synchronization

/// The reports that one reader of the feed has not read yet, at most `itemsMax`, then the number of those that it missed.
final class Follower: Sendable {
  static let itemsMax = 1024

  private struct State {
    var items = Ring<FeedItem>()
    var waiter: CheckedContinuation<FeedItem?, Never>?
    var isEnded = false

    mutating func add(_ event: ReportEvent) {
      guard items.count >= Follower.itemsMax else { return items.append(.report(event)) }
      let isCounted = items.withLast { last in
        guard case .skipped(let count) = last else { return false }
        last = .skipped(count + 1)
        return true
      }
      if isCounted != true { items.append(.skipped(1)) }
    }
  }

  private let filter: ReportFeed.Filter
  private let state = Mutex(State())

  init(_ filter: ReportFeed.Filter) { self.filter = filter }

  /// Never waits.
  func offer(_ events: [ReportEvent]) {
    let wanted = events.filter(filter.takes)
    guard !wanted.isEmpty else { return }
    let (waiter, item) = state.withLock { state -> (CheckedContinuation<FeedItem?, Never>?, FeedItem?) in
      for event in wanted { state.add(event) }
      guard let waiter = state.waiter else { return (nil, nil) }
      state.waiter = nil
      return (waiter, state.items.removeFirst())
    }
    waiter?.resume(returning: item)
  }

  /// The next one, once there is one; nil when it ended, or the task was cancelled. One reader only.
  func next() async -> FeedItem? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let (isKnown, item) = state.withLock { state -> (Bool, FeedItem?) in
          if let item = state.items.removeFirst() { return (true, item) }
          if !state.isEnded { state.waiter = continuation }
          return (state.isEnded, nil)
        }
        if isKnown { continuation.resume(returning: item) }
      }
    } onCancel: {
      end()
    }
  }

  func end() {
    let waiter = state.withLock { state in
      defer { state.waiter = nil }
      state.isEnded = true
      return state.waiter
    }
    waiter?.resume(returning: nil)
  }
}

/// Holds a follower's place in the feed; letting go of it gives that up.
public final class FeedSubscription: Sendable {
  private let follower: Follower
  private let feed: ReportFeed

  init(follower: Follower, feed: ReportFeed) { (self.follower, self.feed) = (follower, feed) }

  deinit { feed.end(follower) }

  /// Waits for the next report. - Returns: nil if the feed ended, or the task was cancelled.
  public func next() async -> FeedItem? { await follower.next() }
}

/// One item that a reader of the feed gets.
public enum FeedItem: Sendable, Equatable {
  /// A report that was admitted or refused.
  case report(ReportEvent)
  /// This many reports came while the reader was behind; they are not shown.
  case skipped(Int)
}
