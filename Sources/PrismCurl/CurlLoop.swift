import CCurl
import Glibc
import PrismBase
import PrismProtocol

/// The thread that performs all transfers of one `CurlTransport`, from its first job until it has been idle for long.
final class CurlLoop {
  struct Settings: Sendable {
    var idleTimeout: Duration, stallTimeout: Duration, connectionLifetime: Duration
    var transfersMax: Int
  }

  /// Handles keep buffers and TLS sessions; more than these are freed after use.
  private static let spareHandlesMax = 4
  private static let keptConnectionsMax = 32
  static let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_ALL)) == CURLE_OK

  private let multi: UnsafeMutableRawPointer
  private let mailbox: TransferMailbox
  private let settings: Settings
  private let time = SystemTime()
  private var transfers: [TransferMailbox.ID: CurlTransfer] = [:]
  private var line: TransferLine
  private var spareHandles: [UnsafeMutableRawPointer] = []

  static func run(_ mailbox: TransferMailbox, _ settings: Settings) {
    // OpenSSL writes without MSG_NOSIGNAL.
    var brokenPipe = sigset_t()
    sigemptyset(&brokenPipe)
    sigaddset(&brokenPipe, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &brokenPipe, nil)
    guard isLibraryReady, let multi = curl_multi_init() else { return mailbox.fail("libcurl cannot start: no memory") }
    mailbox.attach(multi: multi)
    CurlLoop(multi: multi, mailbox, settings).run()
  }

  private init(multi: UnsafeMutableRawPointer, _ mailbox: TransferMailbox, _ settings: Settings) {
    (self.multi, self.mailbox, self.settings) = (multi, mailbox, settings)
    line = TransferLine(transfersMax: settings.transfersMax)
    let keptMax = min(Self.keptConnectionsMax, settings.transfersMax)
    _ = prism_curl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, keptMax)
  }

  deinit {
    for handle in spareHandles { curl_easy_cleanup(handle) }
    curl_multi_cleanup(multi)
  }

  private func run() {
    var idleSince = time.uptime
    while true {
      let work = mailbox.take()
      abort(work.cancelled)
      for job in work.jobs {
        if work.cancelled.contains(job.id) { job.finish(Self.cancelled) } else { line.add(job) }
      }
      while let job = line.next() { begin(job) }
      var running: Int32 = 0
      curl_multi_perform(multi, &running)
      finishDone()
      // One that ended made room.
      if line.hasNext { continue }
      if !transfers.isEmpty || !work.jobs.isEmpty { idleSince = time.uptime }
      let idleLeft = idleSince + settings.idleTimeout - time.uptime
      if transfers.isEmpty, work.isStopped || idleLeft <= .zero, mailbox.detach() { return }
      // With transfers under way, curl's own timers end the wait sooner.
      curl_multi_poll(multi, nil, 0, Int32(clamping: max(idleLeft, .milliseconds(1)).millisecondsRoundedUp), nil)
    }
  }

  private static let cancelled = PostAnswer.unsent(.cancelled, "cancelled before it began")

  private func begin(_ job: TransferMailbox.Job) {
    guard let handle = spareHandles.popLast() ?? curl_easy_init() else {
      return refuse(job, "libcurl has no memory for a transfer")
    }
    let transfer = CurlTransfer(job, handle: handle)
    do {
      try transfer.prepare(stallTimeout: settings.stallTimeout, connectionLifetime: settings.connectionLifetime)
    } catch {
      release(handle)
      return refuse(job, error.description)
    }
    guard curl_multi_add_handle(multi, handle) == CURLM_OK else {
      release(handle)
      return refuse(job, "libcurl did not take the transfer")
    }
    transfers[job.id] = transfer
  }

  private func refuse(_ job: TransferMailbox.Job, _ cause: String) {
    line.ended(job, timedOut: nil)
    job.finish(.unsent(.local, cause))
  }

  private func abort(_ cancelled: Set<TransferMailbox.ID>) {
    for id in cancelled {
      if let transfer = transfers[id] { end(transfer, CURLE_ABORTED_BY_CALLBACK) }
      if let job = line.remove(id) { job.finish(Self.cancelled) }
    }
  }

  private func finishDone() {
    var left: Int32 = 0
    while let message = curl_multi_info_read(multi, &left) {
      let (handle, code) = (message.pointee.easy_handle, message.pointee.data.result)
      guard message.pointee.msg == CURLMSG_DONE else { continue }
      if let transfer = transfers.values.first(where: { $0.handle == handle }) { end(transfer, code) }
    }
  }

  private func end(_ transfer: CurlTransfer, _ code: CURLcode) {
    let answer = transfer.answer(code)
    curl_multi_remove_handle(multi, transfer.handle)
    transfers[transfer.job.id] = nil
    let timedOut = code == CURLE_ABORTED_BY_CALLBACK ? nil : code == CURLE_OPERATION_TIMEDOUT
    line.ended(transfer.job, timedOut: timedOut)
    release(transfer.handle)
    transfer.job.finish(answer)
  }

  private func release(_ handle: UnsafeMutableRawPointer) {
    curl_easy_reset(handle)
    if spareHandles.count < Self.spareHandlesMax { spareHandles.append(handle) } else { curl_easy_cleanup(handle) }
  }
}

extension PostAnswer {
  /// Nothing was sent.
  static func unsent(_ failure: Failure, _ detail: String) -> PostAnswer {
    PostAnswer(
      outcome: .failure(failure, detail: detail), mayHaveLeft: false, bytesSent: 0, bytesReceived: 0, duration: .zero)
  }
}

extension Duration {
  /// Rounded up, so that nothing is given less time than it was promised.
  var millisecondsRoundedUp: Int64 {
    let (seconds, attoseconds) = components
    return seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
  }
}
