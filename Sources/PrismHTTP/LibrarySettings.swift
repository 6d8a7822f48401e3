import CMicroHTTPD
import Glibc

/// `HTTPServerOptions` in libmicrohttpd's terms.
struct LibrarySettings {
  private let options: HTTPServerOptions
  private let listener: ListeningSocket?

  init(_ options: HTTPServerOptions, listener: ListeningSocket?) {
    (self.options, self.listener) = (options, listener)
  }

  var flags: UInt32 {
    var flags = MHD_USE_EPOLL_INTERNAL_THREAD.rawValue | MHD_ALLOW_SUSPEND_RESUME.rawValue
    if listener == nil { flags |= MHD_USE_NO_LISTEN_SOCKET.rawValue }
    if options.tls != nil { flags |= MHD_USE_TLS.rawValue }
    return flags
  }

  /// The PEM texts are only valid within `body`: libmicrohttpd reads them while it starts.
  func withOptions<Result>(_ body: (UnsafePointer<MHD_OptionItem>) -> Result) -> Result {
    let texts = pemTexts.map { (option: $0.0, text: strdup($0.1)) }
    defer { for text in texts { free(text.text) } }
    let strings = texts.map { MHD_OptionItem(option: $0.option, value: 0, ptr_value: $0.text) }
    return body(numbers + strings + [MHD_OptionItem(option: .END, value: 0, ptr_value: nil)])
  }

  private var numbers: [MHD_OptionItem] {
    var numbers: [(MHD_OPTION, Int)] = [
      // Those that give way are closed a moment later.
      (.CONNECTION_LIMIT, options.connectionsMax + 256),
      (.CONNECTION_MEMORY_LIMIT, options.headBytesMax),
      (.CONNECTION_TIMEOUT, max(1, Int(options.headTimeout.components.seconds))),
      (.STRICT_FOR_CLIENT, 1),
    ]
    if let listener { numbers.append((.LISTEN_SOCKET, Int(listener.descriptor))) }
    return numbers.map { MHD_OptionItem(option: $0.0, value: $0.1, ptr_value: nil) }
  }

  private var pemTexts: [(MHD_OPTION, String)] {
    guard let tls = options.tls else { return [] }
    var texts: [(MHD_OPTION, String)] = [
      (.HTTPS_MEM_KEY, String(decoding: tls.key, as: UTF8.self)),
      (.HTTPS_MEM_CERT, String(decoding: tls.certificate, as: UTF8.self)),
      (.HTTPS_PRIORITIES, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"),
    ]
    if let authorities = tls.clientAuthorities {
      texts.append((.HTTPS_MEM_TRUST, String(decoding: authorities, as: UTF8.self)))
    }
    return texts
  }
}

/// A connection or a daemon of libmicrohttpd, whose own functions take it from any thread. Kept as a number, since a
/// pointer may not cross threads by Swift's rules; who holds one says why it is still valid.
struct LibraryPointer: Sendable, Hashable {
  private let bits: UInt

  init(_ pointer: OpaquePointer) {
    bits = UInt(bitPattern: pointer)
  }

  var pointer: OpaquePointer {
    OpaquePointer(bitPattern: bits)!
  }
}
