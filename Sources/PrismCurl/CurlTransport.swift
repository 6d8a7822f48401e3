import CCurl
import Glibc
import PrismBase
public import PrismProtocol

/// Delivers packets and fetches documents by libcurl (docs/delivery.md): HTTP/1.1, verified TLS 1.2 or later, no
/// redirects.
///
/// All transfers run on one thread of the transport's own, so that neither name resolution nor a slow collector ever
/// holds a thread of the cooperative pool. Connections are kept for the next packet of the same collector. After
/// `idleTimeout` without a transfer the connections are closed, the memory is given back and the thread ends; the next
/// POST starts it again.
///
/// At most `transfersMax` are under way at once, so that no number of namespaces uses up the descriptors. The others wait in
/// a `TransferLine`, which keeps places for servers that answer.
///
/// A connection is used again only under the same CA, client certificate and key: a rotated one is in force with the
/// next packet.
///
/// Proxies are taken from the environment as curl does (`https_proxy`, `http_proxy`, `all_proxy`, `no_proxy`), but never
/// used for loopback.
///
/// If a kept connection turns out to be closed, it is replaced and the packet sent once more under the same id, as
/// RFC 9112, 9.3.1 has it. Receivers drop packets that they have already.
public final class CurlTransport: Transport, DownloadSource {
  private let mailbox = TransferMailbox()
  private let settings: CurlLoop.Settings
  private let downloads: String

  /// An older connection carries no further request, unless a transport says otherwise.
  public static let connectionLifetime: Duration = .seconds(120)

  /// - Parameter downloads: the folder whose disk takes downloads while they are used.
  /// - Parameter idleTimeout: after which unused connections are closed.
  /// - Parameter stallTimeout: a transfer without a single byte for so long is given up (`timeout`), however long the
  ///   request's own timeout is.
  /// - Parameter connectionLifetime: an older connection carries no further request: the receiver's name is resolved again.
  ///   In steps of a second.
  /// - Parameter transfersMax: 1 or more.
  public init(
    downloads: String = "/tmp", idleTimeout: Duration = .seconds(60), stallTimeout: Duration = .seconds(60),
    connectionLifetime: Duration = connectionLifetime, transfersMax: Int = 1024
  ) {
    self.downloads = downloads
    settings = CurlLoop.Settings(
      idleTimeout: idleTimeout, stallTimeout: stallTimeout, connectionLifetime: connectionLifetime,
      transfersMax: transfersMax)
  }

  deinit { mailbox.stop() }

  /// Each failure is an outcome.
  public func post(_ request: TransferRequest) async -> PostAnswer { await perform(request) }

  /// GETs into a file. Each failure is an outcome.
  public func download(_ request: TransferRequest) async -> DownloadAnswer {
    do throws(FileError) {
      let file = try UnnamedFile(in: downloads, name: "download")
      let answer = await perform(request, into: file)
      var body: PieceFile?
      if case .response(200, _, _) = answer.outcome { body = try file.finish() }
      return DownloadAnswer(
        outcome: answer.outcome, body: body, bytesOnWire: answer.bytesSent + answer.bytesReceived)
    } catch {
      return DownloadAnswer(outcome: .failure(.local, detail: error.description), body: nil, bytesOnWire: 0)
    }
  }

  private func perform(_ request: TransferRequest, into file: UnnamedFile? = nil) async -> PostAnswer {
    let id = TransferMailbox.newID()
    defer { mailbox.forget(id) }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        submit(TransferMailbox.Job(id: id, request: request, file: file) { continuation.resume(returning: $0) })
      }
    } onCancel: {
      mailbox.cancel(id)
    }
  }

  private func submit(_ job: TransferMailbox.Job) {
    guard mailbox.submit(job) else { return }
    let (mailbox, settings) = (mailbox, settings)
    let failed = DetachedThread.start { CurlLoop.run(mailbox, settings) }
    if failed != 0 { mailbox.fail("no thread for transfers: \(String(cString: strerror(failed)))") }
  }
}
